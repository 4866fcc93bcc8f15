-- pause id, document
local owner, reason = find_to_write()
if not owner then return {reason} end
redis.call('HSET', META, 'pause', ARGV[5], 'document', ARGV[6])
return {'ok'}
