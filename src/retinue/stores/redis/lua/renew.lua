-- gives 1 to the holder, 0 to one that has been overtaken.
if redis.call('HGET', LOCK, 'holder') ~= TOKEN then return 0 end
hold()
return 1
