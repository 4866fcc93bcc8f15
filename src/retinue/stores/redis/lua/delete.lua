local owner, reason = find_to_write()
if not owner then return {reason} end
redis.call('UNLINK', META, ORDER, HEADS, BODIES)
redis.call('ZREM', EVERYONE, ID)
redis.call('ZREM', PREFIX .. owner, ID)
return {'ok'}
