-- whether to wait; gives 1 to the holder, 0 to all others.
local wait = ARGV[5] == '1'

for _, dead in ipairs(redis.call('ZRANGEBYSCORE', WAITS, '-inf', NOW)) do leave(dead) end
local holder, ending = unpack(redis.call('HMGET', LOCK, 'holder', 'until'))
local first = redis.call('ZRANGE', LINE, 0, 0)[1]
local free = not holder or tonumber(ending) <= NOW
if holder == TOKEN or (free and (not first or first == TOKEN)) then
  leave(TOKEN)
  hold()
  return 1
end
if wait then
  if not redis.call('ZSCORE', LINE, TOKEN) then
    redis.call('ZADD', LINE, redis.call('HINCRBY', LOCK, 'tickets', 1), TOKEN)
  end
  redis.call('ZADD', WAITS, NOW + LEASE, TOKEN)
  keep(LOCK)
  keep(LINE)
  keep(WAITS)
end
return 0
