-- Puts the template's terms in force unless newer terms are in force, and stores how far
-- this server's clock is ahead of the database's clock.
-- KEYS  1 shard
-- ARGV  1 epoch  2 version  3 status  4 obtain  5 opens  6 closes  7 limit
--       8 end of validity, 0 = none  9 1 = closed by staff (instants in ms)  10 limit of a household, 0 = none
--       and, if the clock was compared: 11 by how many ms it is ahead  12 the server's run id,
--       "" = unknown
-- returns 1, 0 if the shard is of another epoch, 2 if this server has another run id: the
--       clock was not stored
local f = redis.call('HMGET', KEYS[1], 'epoch', 'version', 'stock')
if f[1] ~= ARGV[1] or not f[3] then return 0 end
if tonumber(f[2]) <= tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], 'version', ARGV[2], 'status', ARGV[3], 'obtain', ARGV[4], 'opens', ARGV[5], 'closes', ARGV[6],
    'limit', ARGV[7], 'gone', ARGV[8], 'over', ARGV[9], 'households', ARGV[10])
end
if not ARGV[11] then return 1 end
local info = redis.pcall('INFO', 'server')
local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)') or ''
if ARGV[12] ~= '' and id ~= ARGV[12] then return 2 end
redis.call('HSET', KEYS[1], 'ahead', ARGV[11], 'server', ARGV[12])
return 1
