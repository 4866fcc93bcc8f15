-- the first and the last position to remove, whether the pause goes too, now
local low, high, unpause, now = ARGV[5], ARGV[6], ARGV[7] == '1', ARGV[8]

local owner, reason = find_to_write()
if not owner then return {reason} end
cut(ID, low, high)  -- first, as a server without memory takes what follows a removal
if unpause then redis.call('HDEL', META, 'pause', 'document') end
touch(owner, now)
return {'ok'}
