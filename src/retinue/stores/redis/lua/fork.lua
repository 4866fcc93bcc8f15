-- id of the fork, the position up to which it goes or an empty text for all, now
local new, at, now = ARGV[5], tonumber(ARGV[6]), ARGV[7]
TOKEN = ''  -- the parent stays as it is, whoever writes it

local owner, reason = find_to_write()
if not owner then return {reason} end
local meta, order, heads, bodies = key('meta', new), key('order', new), key('heads', new), key('bodies', new)
if redis.call('HEXISTS', meta, 'id') == 1 then return {'taken'} end
if redis.call('EXISTS', meta, order, heads, bodies) > 0 then return {'foreign'} end

local title, question, last, pause, document =
  unpack(redis.call('HMGET', META, 'title', 'question', 'last', 'pause', 'document'))
local stop = string.format('%.0f', math.min(at or math.huge, tonumber(last)))
redis.call('HSET', meta, 'id', new, 'owner', owner, 'title', title, 'last', stop, 'created', now,
  'parent', ID, 'forked_at', stop)
if question then redis.call('HSET', meta, 'question', question) end
if pause and not at then redis.call('HSET', meta, 'pause', pause, 'document', document) end
redis.call('COPY', ORDER, order)
redis.call('COPY', HEADS, heads)
redis.call('COPY', BODIES, bodies)
cut(new, '(' .. stop, '+inf')
ID, META = new, meta
touch(owner, now)
return {'ok'}
