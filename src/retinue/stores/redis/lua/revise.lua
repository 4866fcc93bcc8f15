-- message id, body, title, now
local message, body, title, now = ARGV[5], ARGV[6], ARGV[7], ARGV[8]

local owner, reason = find_to_write()
if not owner then return {reason} end
local position = tonumber(redis.call('ZSCORE', ORDER, message))
if not position then return {'unknown', message} end

touch(owner, now)
redis.call('HSET', BODIES, message, body)
if tonumber(redis.call('HGET', META, 'question')) == position then
  redis.call('HSET', META, 'title', title)
end
return {'ok'}
