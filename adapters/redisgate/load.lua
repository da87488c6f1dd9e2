-- Writes fields into a hash that belongs to a sealed shard.
-- KEYS  1 shard  2 the hash
-- ARGV  1 epoch, then field, value …
-- returns 1, or 0 if the shard is not sealed for this epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if f[1] ~= ARGV[1] or f[2] ~= 'sealed' then return 0 end
redis.call('HSET', KEYS[2], unpack(ARGV, 2))
return 1
