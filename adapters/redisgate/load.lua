-- Writes fields into a hash of a shard that is being built or filled. A field that exists
-- is left unchanged: it is from a claim that was accepted meanwhile and is newer.
-- KEYS  1 shard  2 the hash
-- ARGV  1 epoch, then field, value …
-- returns 1, or 0 if the shard is of another epoch
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[1] then return 0 end
for at = 2, #ARGV, 2 do redis.call('HSETNX', KEYS[2], ARGV[at], ARGV[at + 1]) end
return 1
