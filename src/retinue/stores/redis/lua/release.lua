-- pause id; gives whether it was this one.
local owner, reason = find_to_write()
if not owner then return {reason} end
if redis.call('HGET', META, 'pause') ~= ARGV[5] then return {'ok', 0} end
redis.call('HDEL', META, 'pause', 'document')
return {'ok', 1}
