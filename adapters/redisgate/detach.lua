-- Ends the moves under way between this shard and a fenced shard whose content is lost: a
-- move from the lost shard arrives with no stock, and earlier moves towards the lost shard
-- take no more stock from this shard.
-- KEYS  1 shard  2 gone: per receiver "number amount total"  3 came: per donor the total
-- ARGV  1 epoch  2 the lost shard  3 number from which its new moves count
-- returns { stock that came from the lost shard, stock that went to it, number of the last
--       move begun by this shard, 1 if all stock that came has a known donor }, or { } if
--       the shard is of another epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'state', 'begun', 'done', 'donor', 'in')
if f[1] ~= ARGV[1] or f[2] == 'sealed' then return {} end
if f[3] ~= f[4] and f[5] == ARGV[2] then redis.call('HSET', KEYS[1], 'done', f[3]) end
local total = 0
local gone = redis.call('HGET', KEYS[2], ARGV[2])
if gone then total = tonumber(string.match(gone, ' (%d+)$')) end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3] .. ' 0 ' .. string.format('%.0f', total))
local sum = 0
for _, amount in ipairs(redis.call('HVALS', KEYS[3])) do sum = sum + tonumber(amount) end
return { tonumber(redis.call('HGET', KEYS[3], ARGV[2]) or 0), total, tonumber(f[3]), sum == tonumber(f[6]) and 1 or 0 }
