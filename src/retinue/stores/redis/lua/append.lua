-- turn, now, number of messages; id, body and title of each; then ids and states in pairs.
local turn, now, count = ARGV[5], ARGV[6], tonumber(ARGV[7])
local first_state = 8 + 3 * count

local status, owner = find()
if status ~= 'ok' and status ~= 'none' then return {status} end

local is_new, new = {}, {}
for at = 8, first_state - 1, 3 do
  if not redis.call('ZSCORE', ORDER, ARGV[at]) then
    is_new[ARGV[at]] = true
    new[#new + 1] = at
  end
end
local states, heads = {}, {}
for at = first_state, #ARGV, 2 do
  local id, state = ARGV[at], ARGV[at + 1]
  states[id] = state
  if not is_new[id] then
    if not redis.call('ZSCORE', ORDER, id) then return {'unknown', id} end
    local head = redis.call('HGET', HEADS, id)
    local rest = head and string.find(head, '|', 1, true)
    if not rest then return {'torn'} end
    heads[#heads + 1] = id
    heads[#heads + 1] = state .. string.sub(head, rest)
  end
end
if #new == 0 and #heads == 0 then return {'ok'} end
if status == 'none' then
  if ASKER == 'everyone' then return {'unowned'} end
  owner = ASKER
end
local reason = refusal(owner)
if reason then return {reason} end

if status == 'none' then
  redis.call('SET', VERSION, FORMAT)
  redis.call('HSET', META, 'id', ID, 'owner', owner, 'title', '', 'last', 0, 'created', now)
end
local last, question = unpack(redis.call('HMGET', META, 'last', 'question'))
last = tonumber(last)
for at = 1, #heads, 2 do redis.call('HSET', HEADS, heads[at], heads[at + 1]) end
for _, at in ipairs(new) do
  local id, body, title = ARGV[at], ARGV[at + 1], ARGV[at + 2]
  last = last + 1
  redis.call('ZADD', ORDER, last, id)
  redis.call('HSET', HEADS, id, (states[id] or '') .. '|' .. now .. '|' .. turn)
  redis.call('HSET', BODIES, id, body)
  if not question and title ~= '' then
    question = last
    redis.call('HSET', META, 'title', title, 'question', last)
  end
end
redis.call('HSET', META, 'last', last)
touch(owner, now)
return {'ok'}
