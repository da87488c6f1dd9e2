-- Takes stock off the donor's shard for a numbered move, once: repeated, it
-- returns the amount of the first time. A move that takes nothing is a move.
-- KEYS  1 shard of the donor  2 gone: per receiver "number amount total"
-- ARGV  1 epoch  2 receiver  3 number  4 how many are wanted
-- returns the amount, -1 if a later move was here, -2 if the shard is of another epoch
local f = redis.call('HMGET', KEYS[1], 'epoch', 'stock', 'state')
if f[1] ~= ARGV[1] or f[3] == 'sealed' then return -2 end
local number, amount, total = 0, 0, 0
local gone = redis.call('HGET', KEYS[2], ARGV[2])
if gone then
  local a, b, c = string.match(gone, '^(%d+) (%d+) (%d+)$')
  number, amount, total = tonumber(a), tonumber(b), tonumber(c)
end
local asked = tonumber(ARGV[3])
if number == asked then return amount end
if number > asked then return -1 end
-- Half of it, so that the donor's own users find something too; more only if
-- more claims wait for it.
local stock = tonumber(f[2])
amount = math.min(stock, math.max(math.ceil(stock / 2), tonumber(ARGV[4])))
redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f %.0f %.0f', asked, amount, total + amount))
if amount > 0 then
  redis.call('HINCRBY', KEYS[1], 'stock', string.format('%.0f', -amount))
  redis.call('HINCRBY', KEYS[1], 'out', string.format('%.0f', amount))
end
return amount
