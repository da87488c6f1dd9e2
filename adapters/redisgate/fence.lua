-- Fences the shard against all epochs before the given epoch. Without a shard it creates
-- a fenced shard.
-- KEYS  1 shard
-- ARGV  1 epoch
-- returns 1, or 0 if the shard belongs to a later epoch
local epoch = tonumber(redis.call('HGET', KEYS[1], 'epoch') or 0)
if epoch > tonumber(ARGV[1]) then return 0 end
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'state', 'sealed')
return 1
