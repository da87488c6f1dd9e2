-- Raises the shard's allotment to the given total.
-- KEYS  1 shard
-- ARGV  1 epoch  2 new total of the allotment  3 how many openings of doors it takes into account
-- returns 1, or 0 if the shard is of another epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'allot', 'state', 'shares')
if f[1] ~= ARGV[1] or f[3] == 'sealed' then return 0 end
local more = tonumber(ARGV[2]) - tonumber(f[2])
if more > 0 then
  redis.call('HINCRBY', KEYS[1], 'stock', string.format('%.0f', more))
  redis.call('HSET', KEYS[1], 'allot', ARGV[2])
end
if tonumber(ARGV[3]) > tonumber(f[4] or 0) then redis.call('HSET', KEYS[1], 'shares', ARGV[3]) end
return 1
