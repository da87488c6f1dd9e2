-- Removes written groups from the stream and returns the stock of claims that the database
-- refused. Only the call that deletes an entry does so: it happens once.
-- KEYS  1 shard  2 users  3 claims  4 stream  5 keys
-- ARGV  1 group of readers  2 epoch, then per entry: its id, how many claims,
--       and per claim: id, user, 1 = issued, 0 = refused, or 2 = refused while users wait, who get
--       its coupon instead of this shard; the idempotency key that the
--       refusal frees ("" = none)
-- returns how many entries were settled by this call, -2 if the shard is of another epoch
if redis.call('HGET', KEYS[1], 'epoch') ~= ARGV[2] then return -2 end
local settled, returned, at = 0, 0, 3
while at <= #ARGV do
  local entry, n = ARGV[at], tonumber(ARGV[at + 1])
  at = at + 2
  redis.call('XACK', KEYS[4], ARGV[1], entry)
  if redis.call('XDEL', KEYS[4], entry) == 1 then
    settled = settled + 1
    for i = 0, n - 1 do
      local id, user, key = ARGV[at + 4 * i], ARGV[at + 4 * i + 1], ARGV[at + 4 * i + 3]
      redis.call('HDEL', KEYS[3], id)
      if key ~= '' and redis.call('HGET', KEYS[5], key) == id .. ' ' .. user then redis.call('HDEL', KEYS[5], key) end
      local verdict = ARGV[at + 4 * i + 2]
      if verdict == '0' then returned = returned + 1 end
      if verdict ~= '1' then
        if redis.call('HINCRBY', KEYS[2], user, -1) <= 0 then redis.call('HDEL', KEYS[2], user) end
        local home = redis.call('HGET', KEYS[2], 'of:' .. user)
        if home then redis.call('HINCRBY', KEYS[2], 'h' .. home, -1) end
      end
    end
  end
  at = at + 4 * n
end
if returned > 0 then
  redis.call('HINCRBY', KEYS[1], 'stock', returned)
  redis.call('HINCRBY', KEYS[1], 'returned', returned)
end
return settled
