-- Adds the stock that a numbered move took to the receiver's shard, once.
-- KEYS  1 shard of the receiver  2 came: per donor the total
-- ARGV  1 epoch  2 number  3 amount
-- returns 1, 0 if it was added before, -2 if the shard is of another epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'begun', 'done', 'state', 'donor')
if f[1] ~= ARGV[1] or f[4] == 'sealed' then return -2 end
if f[2] ~= ARGV[2] or f[2] == f[3] then return 0 end
redis.call('HINCRBY', KEYS[1], 'stock', ARGV[3])
redis.call('HINCRBY', KEYS[1], 'in', ARGV[3])
redis.call('HINCRBY', KEYS[2], f[5], ARGV[3])
redis.call('HSET', KEYS[1], 'done', ARGV[2])
return 1
