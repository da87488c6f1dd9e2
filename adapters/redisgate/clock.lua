-- Returns the shard's estimate of the database's clock, by which it checks the
-- window.
-- KEYS  1 shard
-- returns ms since 1970
local time = redis.call('TIME')
return time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(redis.call('HGET', KEYS[1], 'ahead') or 0)
