-- Puts the template's terms in force unless newer ones are, and sets this
-- server's clock against the database's.
-- KEYS  1 shard
-- ARGV  1 epoch  2 version  3 status  4 obtain  5 opens  6 closes  7 limit
--       8 end of validity, 0 = none  9 1 = closed by staff
--       10 the database's clock  11 how far apart clocks may be unnoticed (instants in ms)
-- returns 1, or 0 if the shard is of another epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'stock')
if f[1] ~= ARGV[1] or not f[3] then return 0 end
local time = redis.call('TIME')
local ahead = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(ARGV[10])
if math.abs(ahead) <= tonumber(ARGV[11]) then ahead = 0 end
redis.call('HSET', KEYS[1], 'ahead', string.format('%.0f', ahead))
if tonumber(f[2]) <= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'status', ARGV[3], 'obtain', ARGV[4], 'opens', ARGV[5], 'closes', ARGV[6],
    'limit', ARGV[7], 'gone', ARGV[8], 'over', ARGV[9])
end
return 1
