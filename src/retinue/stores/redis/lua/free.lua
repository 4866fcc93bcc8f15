-- gives 1 to the holder, 0 to one that has been overtaken or only waited.
leave(TOKEN)
local held = redis.call('HGET', LOCK, 'holder') == TOKEN
if held then redis.call('HDEL', LOCK, 'holder', 'until') end
if redis.call('EXISTS', LINE) == 0 and redis.call('HEXISTS', LOCK, 'holder') == 0 then
  redis.call('DEL', LOCK)
end
return held and 1 or 0
