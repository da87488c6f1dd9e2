-- Opens a sealed shard that has been filled.
-- KEYS  1 shard
-- ARGV  1 epoch
-- returns 1, or 0 if the shard is of another epoch or was never filled
local f = redis.call('HMGET', KEYS[1], 'epoch', 'limit', 'stock')
if f[1] ~= ARGV[1] or not f[2] or not f[3] then return 0 end
redis.call('HSET', KEYS[1], 'state', 'open')
return 1
