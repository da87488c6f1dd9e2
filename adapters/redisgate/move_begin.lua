-- Begins a move of stock towards this shard, or returns the move under way: a shard has one
-- move at a time, and the next caller finishes it.
-- KEYS  1 shard of the receiver
-- ARGV  1 epoch  2 donor  3 wanted amount
-- returns { number, donor, wanted } or { 0 } if the shard is of another epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'begun', 'done', 'donor', 'wanted', 'state')
if f[1] ~= ARGV[1] or f[6] == 'sealed' then return { 0 } end
if f[2] ~= f[3] then return { tonumber(f[2]), tonumber(f[4]), tonumber(f[5]) } end
local begun = redis.call('HINCRBY', KEYS[1], 'begun', 1)
redis.call('HSET', KEYS[1], 'donor', ARGV[2], 'wanted', ARGV[3])
return { begun, tonumber(ARGV[2]), tonumber(ARGV[3]) }
