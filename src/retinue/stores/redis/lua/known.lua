-- message ids; gives the places (from 0) of those that are stored.
local status = find()
if status ~= 'ok' then return {status} end
local reply = {'ok'}
for at = 5, #ARGV do
  if redis.call('ZSCORE', ORDER, ARGV[at]) then reply[#reply + 1] = at - 5 end
end
return reply
