-- Empties a sealed shard and fills it. Everything on its stream must be in the
-- database by now.
-- KEYS  1 shard  2 users  3 keys  4 claims  5 stream  6 gone  7 came
-- ARGV  1 epoch  2 stock  3 group of readers
-- returns 1, or 0 if the shard is not sealed for this epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if f[1] ~= ARGV[1] or f[2] ~= 'sealed' then return 0 end
redis.call('UNLINK', unpack(KEYS))
redis.call('HSET', KEYS[1], 'epoch', ARGV[1], 'state', 'sealed', 'stock', ARGV[2], 'allot', ARGV[2], 'accepted', 0,
  'returned', 0, 'in', 0, 'out', 0, 'begun', 0, 'done', 0, 'version', 0, 'ahead', 0)
-- Marks of no user and no request: as long as they are there, so is the rest.
redis.call('HSET', KEYS[2], '0', 0)
redis.call('HSET', KEYS[3], '#0', '')
redis.call('XGROUP', 'CREATE', KEYS[5], ARGV[3], '0', 'MKSTREAM')
return 1
