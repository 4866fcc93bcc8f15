-- tick to stay below, limit; gives the tick of the last one looked at, and what is told of each.
local below, limit = ARGV[5], ARGV[6]

if newer() then return {'newer'} end
local found = redis.call('ZREVRANGEBYSCORE', PREFIX .. ASKER, below, '-inf', 'WITHSCORES', 'LIMIT', 0, limit)
local reply = {'ok', found[#found] or ''}
for at = 1, #found, 2 do
  local id = found[at]
  local row = redis.call('HMGET', key('meta', id), 'id', 'owner', 'title', 'created', 'updated',
    'parent', 'forked_at', 'pause')
  if row[1] then
    row[#row + 1] = redis.call('ZCARD', key('order', id))
    reply[#reply + 1] = row
  end
end
return reply
