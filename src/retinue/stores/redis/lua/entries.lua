-- ZRANGEBYSCORE or ZREVRANGEBYSCORE, from, to, limit; gives positions, heads and bodies, three lists
-- in one piece of MessagePack, which a client reads in a tenth of the time that so many replies take.
local command, from, to, limit = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

local status = find()
if status ~= 'ok' then return {status} end
local found = redis.call(command, ORDER, from, to, 'WITHSCORES', 'LIMIT', 0, limit)
local ids, positions = {}, {}
for at = 1, #found, 2 do
  ids[#ids + 1] = found[at]
  positions[#positions + 1] = tonumber(found[at + 1])
end
return {'ok', cmsgpack.pack({positions, values(HEADS, ids), values(BODIES, ids)})}
