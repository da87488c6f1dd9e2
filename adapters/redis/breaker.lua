-- One step of a circuit breaker, on the clock of Redis.
--
-- KEYS[1]  hash of the breaker: state, since, failures (in a row), window,
--          calls, failed (since window), backoff, until (end of the open
--          state, or of the probe's lease), detail, held (end of the pause
--          that the provider requested), hold (length of that pause if the
--          provider named no time), look (when the next single call during
--          the pause may go), looking (1 = that call is on its way)
-- ARGV[1]  'admit', 'unused' (admitted, and no call was made), 'ok', 'fail' or
--          'throttled'
-- ARGV[2]  failures in a row that open it
-- ARGV[3]  length of the counting window, ms
-- ARGV[4]  calls in a window at which the breaker opens if half of them fail
-- ARGV[5]  first time in the open state, ms (doubles with each failed probe)
-- ARGV[6]  longest time in the open state, ms
-- ARGV[7]  lease of a probe, ms
-- ARGV[8]  the provider's answer, for 'fail'
-- ARGV[9]  how many calls succeeded, for 'ok' and 'throttled'
-- ARGV[10] the pause that the provider requested, ms, for 'throttled'; 0 if it
--          named no time
-- ARGV[11] the first pause if the provider named no time, ms; it doubles until
--          a call succeeds
-- ARGV[12] longest pause if the provider named no time, ms
-- ARGV[13] longest pause that a provider can request, ms
-- ARGV[14] interval of single calls during such a pause, ms
--
-- Returns {ms to wait before the call (0 = go ahead), state, or 'held'}

local key, event = KEYS[1], ARGV[1]
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)

local names = {'state', 'failures', 'window', 'calls', 'failed', 'backoff', 'until', 'held', 'hold', 'look', 'looking'}
local stored, b = redis.call('HMGET', key, unpack(names)), {}
for i, name in ipairs(names) do b[name] = tonumber(stored[i]) or 0 end
b.state = stored[1] or 'closed'

local function save(...)
  redis.call('HSET', key, ...)
  redis.call('PEXPIRE', key, 86400000)
end

local function open(backoff)
  save('state', 'open', 'since', now, 'failures', b.failures, 'backoff', backoff, 'until', now + backoff,
    'detail', ARGV[8], 'calls', 0, 'failed', 0)
  return {backoff, 'open'}
end

if event == 'throttled' then
  local asked = math.min(tonumber(ARGV[10]), tonumber(ARGV[13]))
  if asked == 0 and now >= b.held then -- calls that began before a pause say nothing new
    b.hold = math.min(math.max(b.hold * 2, tonumber(ARGV[11])), tonumber(ARGV[12]))
    asked = b.hold
  end
  if now >= b.held then b.look = now + tonumber(ARGV[14]) end
  save('held', math.max(b.held, now + asked), 'hold', b.hold, 'look', b.look, 'looking', 0)
elseif event == 'ok' and (b.looking == 1 or b.hold > 0 and now >= b.held) then
  save('held', math.min(b.held, now), 'hold', 0, 'looking', 0)
end

if event == 'admit' then
  if now < b.held then
    if now < b.look then return {math.min(b.held, b.look) - now, 'held'} end
    -- One call checks whether the provider still throttles the others, too.
    save('look', now + tonumber(ARGV[14]), 'looking', 1)
    if b.state == 'closed' then return {0, 'held'} end
  end
  if b.state == 'closed' then return {0, 'closed'} end
  if now < b['until'] then
    -- A probe usually answers long before its lease ends.
    local wait = b['until'] - now
    if b.state == 'half-open' then wait = math.min(wait, 1000) end
    return {wait, b.state}
  end
  -- The open time is over, or the last probe died: this caller probes.
  save('state', 'half-open', 'until', now + ARGV[7])
  if b.state == 'open' then redis.call('HSET', key, 'since', now) end
  return {0, 'half-open'}
end

-- If the unused call was the probe, another caller may probe at once. A caller that was
-- admitted before the circuit opened cannot be told from the probe; it causes a second probe.
if event == 'unused' then
  if b.looking == 1 then save('look', now, 'looking', 0) end
  if b.state == 'half-open' then save('until', now) end
  return {0, b.state}
end

-- Calls that began before the breaker opened say nothing new.
if b.state == 'open' then return {0, 'open'} end

if b.state == 'half-open' then
  b.failures = b.failures + 1
  if event == 'fail' then return open(math.min(b.backoff * 2, tonumber(ARGV[6]))) end
  save('state', 'closed', 'since', now, 'failures', 0, 'window', now, 'calls', 0, 'failed', 0, 'backoff', 0, 'detail', '')
  return {0, 'closed'}
end

if now - b.window >= tonumber(ARGV[3]) then b.window, b.calls, b.failed = now, 0, 0 end
if event ~= 'fail' then -- a provider that asks for patience works
  b.calls, b.failures = b.calls + tonumber(ARGV[9]), 0
else
  b.calls, b.failures, b.failed = b.calls + 1, b.failures + 1, b.failed + 1
  local many = b.calls >= tonumber(ARGV[4]) and b.failed * 2 >= b.calls
  if many or b.failures >= tonumber(ARGV[2]) then return open(tonumber(ARGV[5])) end
  redis.call('HSET', key, 'detail', ARGV[8])
end
save('state', 'closed', 'failures', b.failures, 'window', b.window, 'calls', b.calls, 'failed', b.failed)
return {0, 'closed'}
