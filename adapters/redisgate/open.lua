-- Lets a shard decide claims. An open shard knows all its users; a filling shard asks for
-- each user whom it does not know.
-- KEYS  1 shard
-- ARGV  1 epoch  2 "open" or "filling"
-- returns 1, or 0 if the shard is of another epoch or has no stock or no terms yet
local f = redis.call('HMGET', KEYS[1], 'epoch', 'limit', 'stock')
if f[1] ~= ARGV[1] or not f[2] or not f[3] then return 0 end
redis.call('HSET', KEYS[1], 'state', ARGV[2])
return 1
