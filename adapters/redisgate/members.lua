-- Records that a keeper is alive and lists all living keepers.
-- KEYS  1 keepers, by the time of their last call (ms since 1970)
-- ARGV  1 name of the calling keeper  2 ms of silence after which a keeper is gone
-- returns this server's run id ("" = unknown), then the names of the living keepers
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('ZADD', KEYS[1], now, ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('%.0f', now - tonumber(ARGV[2])))
local names = redis.call('ZRANGE', KEYS[1], 0, -1)
local info = redis.pcall('INFO', 'server')
table.insert(names, 1, type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '')
return names
