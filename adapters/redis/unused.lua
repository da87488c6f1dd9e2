-- Subtracts mails that were admitted and not sent from a domain's count of a day.
--
-- KEYS[1] hash of the domain, see domain.lua
-- ARGV[1] the day since 1970
-- ARGV[2] number of mails

local day, mails = string.match(redis.call('HGET', KEYS[1], 'used') or '', '(%d+) (%d+)')
if day == ARGV[1] then
  redis.call('HSET', KEYS[1], 'used', string.format('%s %d', day, math.max(0, mails - ARGV[2])))
end
return 0
