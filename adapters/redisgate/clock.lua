-- Reads the clock of the server that has the shard.
-- KEYS  1 shard
-- returns { the server's run id ("" = unknown), ms since 1970 }
local info = redis.pcall('INFO', 'server')
local time = redis.call('TIME')
return { type(info) == 'string' and string.match(info, 'run_id:(%x+)') or '', time[1] * 1000 + math.floor(time[2] / 1000) }
