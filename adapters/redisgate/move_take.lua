-- Takes stock from the donor's shard for a numbered move, once: a repeated call returns the
-- amount of the first call. A move that takes nothing counts as a move.
-- KEYS  1 shard of the donor  2 gone: per receiver "number amount total"
-- ARGV  1 epoch  2 receiver  3 number  4 wanted amount
-- returns the amount, -1 if a later move has taken stock here, -2 if the shard is of another epoch
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
-- The move takes half of the stock, so that stock is left for the donor's own users. It takes
-- more only if more claims wait for it.
local stock = tonumber(f[2])
amount = math.min(stock, math.max(math.ceil(stock / 2), tonumber(ARGV[4])))
redis.call('HSET', KEYS[2], ARGV[2], string.format('%.0f %.0f %.0f', asked, amount, total + amount))
if amount > 0 then
  redis.call('HINCRBY', KEYS[1], 'stock', string.format('%.0f', -amount))
  redis.call('HINCRBY', KEYS[1], 'out', string.format('%.0f', amount))
end
return amount
