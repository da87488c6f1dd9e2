-- Returns the shard's estimate of the database's clock, by which the shard judges the claim
-- window, and whether the shard has lost one of its keys.
-- KEYS  1 shard  2 users  3 keys  4 stream
-- returns { ms since 1970, 1 if a key that a reset created is gone (otherwise 0), 1 if the
--       clock of another server was compared instead of this server's (otherwise 0) }
local time = redis.call('TIME')
local f = redis.call('HMGET', KEYS[1], 'ahead', 'server')
local function broken()
  return redis.call('HEXISTS', KEYS[2], '0') == 0 or redis.call('HEXISTS', KEYS[3], '#0') == 0
    or redis.call('EXISTS', KEYS[4]) == 0 or #redis.call('XINFO', 'GROUPS', KEYS[4]) == 0
end
local info = redis.pcall('INFO', 'server')
local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
return { time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(f[1] or 0), broken() and 1 or 0,
  f[2] and f[2] ~= id and 1 or 0 }
