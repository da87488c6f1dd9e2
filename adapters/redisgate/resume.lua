-- Gives a sealed shard that was reset the counters of the lost shard that it replaces.
-- KEYS  1 shard  2 gone: per receiver "number amount total"  3 came: per donor the total
-- ARGV  1 epoch  2 stock  3 accepted  4 returned  5 number of the last move towards it, then per
--       other shard: its number, stock that came from it, stock that went to it, the last move
--       that it began
-- returns 1, or 0 if the shard is not sealed for this epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'state')
if f[1] ~= ARGV[1] or f[2] ~= 'sealed' then return 0 end
local came, went = 0, 0
for at = 6, #ARGV, 4 do
  redis.call('HSET', KEYS[3], ARGV[at], ARGV[at + 1])
  redis.call('HSET', KEYS[2], ARGV[at], ARGV[at + 3] .. ' 0 ' .. ARGV[at + 2])
  came, went = came + tonumber(ARGV[at + 1]), went + tonumber(ARGV[at + 2])
end
redis.call('HSET', KEYS[1], 'stock', ARGV[2], 'accepted', ARGV[3], 'returned', ARGV[4], 'begun', ARGV[5], 'done', ARGV[5],
  'in', string.format('%.0f', came), 'out', string.format('%.0f', went))
return 1
