-- Decides how many mails to one domain may go now, and gives turns to the other mails, on the
-- clock of Redis.
--
-- KEYS[1] hash of the domain: filled, the instant up to which the budget is used up; used,
--         the day since 1970 and the number of mails sent on that day; and for each deadline
--         with waiting mails "<mails> <turn> <from> <again>": the number of waiting mails, the
--         last turn given, the beginning of the gapless row of turns that ends there, and when
--         mails without a turn ask again
-- ARGV[1] mails per second
-- ARGV[2] number of mails that return because their turn has come
-- ARGV[3] number of mails that ask for the first time
-- ARGV[4] deadline of these mails in seconds, plus 2^40 for mails that go after all others;
--         mails with a nearer deadline go first
-- ARGV[5] time until the deadline, ms
-- ARGV[6] how far ahead turns are given, ms
-- ARGV[7] the instant in microseconds instead of Redis's, for tests; 0 = Redis's
--
-- Returns {number of mails that may go, returning mails first; ms until the first turn of the
-- other mails; number of mails with a turn; ms after which mails without a turn ask again}

local second, grace = 1000000, 10000000
local rate, back, fresh, deadline = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4])
local left, horizon, now = tonumber(ARGV[5]) * 1000, tonumber(ARGV[6]) * 1000, tonumber(ARGV[7])
if now == 0 then
  local time = redis.call('TIME')
  now = time[1] * second + time[2]
end
local every = second / rate

-- Mails with a nearer deadline go first if their turns lie ahead, or were within the last two
-- seconds. A deadline that is over, or whose last turn was earlier, has no waiting mails: they
-- have expired or were cancelled.
local after_all = 2 ^ 40
local today = math.floor(now / 86400 / second)
local filled, used, ahead, waiting, turn, from, asks = 0, 0, 0, 0, 0, 0, 0
local all = redis.call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
  if all[i] == 'filled' then
    filled = tonumber(all[i + 1])
  elseif all[i] == 'used' then
    local day, mails = string.match(all[i + 1], '(%d+) (%d+)')
    used = tonumber(day) == today and tonumber(mails) or 0
  else
    local mails, last, first, ask = string.match(all[i + 1], '(%d+) (%d+) ?(%d*) ?(%d*)')
    local id = tonumber(all[i])
    mails, last, first, ask = tonumber(mails), tonumber(last), tonumber(first) or 0, tonumber(ask) or 0
    if math.max(last, ask) + grace < now or (id % after_all + 1) * second < now then
      redis.call('HDEL', KEYS[1], all[i])
    elseif id < deadline and last + grace >= now then
      ahead = ahead + math.min(mails, math.ceil(math.max(0, last - now) / every) + 2 * rate)
    elseif id == deadline then
      waiting, turn, from, asks = mails, last, first, ask
    end
  end
end

-- Returning mails come in steps of two seconds, so the mails of two seconds may go at once.
-- Mails without a turn do not overtake mails with turns.
local function free(since) return math.max(0, math.floor((now + second - since) / every + 0.001)) end
filled = math.max(filled, now - second)
local gone = 0
if ahead == 0 then
  gone = math.min(back, free(filled))
  filled = filled + gone * every
  if gone == back and turn <= now then
    local since = math.max(filled, now)
    local more = math.min(fresh, free(since))
    if more > 0 then
      filled = since + more * every
      gone = gone + more
    end
  end
end

-- Turns that lie ahead belong to mails that have not returned yet. If the count of waiting
-- mails is smaller than these turns and the returned mails together, some returned mails were
-- never counted: they waited for the end of a pause, or were admitted and not sent, or Redis
-- was emptied.
local held = back + fresh - gone
local away = math.max(0, math.floor((turn - math.max(now, from)) / every + 0.001))
waiting = math.max(waiting, back + away) - math.min(back, gone) + fresh - math.max(0, gone - back)
local first, given, again = 0, 0, 0
if held > 0 then
  first = math.max(now, turn + every, filled + every - second, now + ahead * every)
  local last = now + math.min(horizon, left)
  if first <= last then
    given = math.min(held, math.floor((last - first) / every) + 1)
    if first > turn + every + 1 then
      from = first
    end
    turn = first + (given - 1) * every
  end
  again = left <= horizon and left or horizon * 0.9
  if given < held then
    asks = now + again
  end
end
redis.call('HSET', KEYS[1], 'filled', string.format('%.0f', filled), 'used', string.format('%d %d', today, used + gone))
if waiting > 0 and math.max(turn, asks) + grace >= now then
  redis.call('HSET', KEYS[1], ARGV[4], string.format('%d %.0f %.0f %.0f', waiting, turn, from, asks))
else
  redis.call('HDEL', KEYS[1], ARGV[4])
end
redis.call('EXPIRE', KEYS[1], 2 * 86400)
return {gone, math.ceil((first - now) / 1000), given, math.ceil(again / 1000)}
