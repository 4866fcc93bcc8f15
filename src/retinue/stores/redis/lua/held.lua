local status = find()
if status ~= 'ok' then return {status} end
local pause, document = unpack(redis.call('HMGET', META, 'pause', 'document'))
if not pause then return {'ok'} end
return {'ok', pause, document}
