-- One step of a circuit breaker, on the clock of Redis.
--
-- KEYS[1]  hash of the breaker: state, since, failures (in a row), window,
--          calls, failed (since window), backoff, until (end of the open
--          state, or of the probe's lease), detail
-- ARGV[1]  'admit', 'unused' (admitted, and no call was made), 'ok' or 'fail'
-- ARGV[2]  failures in a row that open it
-- ARGV[3]  length of the counting window, ms
-- ARGV[4]  calls in a window from which on half of them failing opens it
-- ARGV[5]  first time in the open state, ms (doubles with each failed probe)
-- ARGV[6]  longest time in the open state, ms
-- ARGV[7]  lease of a probe, ms
-- ARGV[8]  the provider's answer, for 'fail'
-- ARGV[9]  how many calls went well, for 'ok'
--
-- Returns {ms to wait before the call (0 = go ahead), state}

local key, event = KEYS[1], ARGV[1]
local now = redis.call('TIME')
now = now[1] * 1000 + math.floor(now[2] / 1000)

local names = {'state', 'failures', 'window', 'calls', 'failed', 'backoff', 'until'}
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

if event == 'admit' then
  if b.state == 'closed' then return {0, 'closed'} end
  if now < b['until'] then
    -- A probe usually answers long before its lease ends.
    local wait = b['until'] - now
    if b.state == 'half-open' then wait = math.min(wait, 1000) end
    return {wait, b.state}
  end
  -- The open time is over, or whoever probed died: this caller probes.
  save('state', 'half-open', 'until', now + ARGV[7])
  if b.state == 'open' then redis.call('HSET', key, 'since', now) end
  return {0, 'half-open'}
end

-- If it was the probe, somebody else may probe at once. Whoever was admitted
-- before the circuit opened cannot be told apart and costs a second probe.
if event == 'unused' then
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
if event == 'ok' then
  b.calls, b.failures = b.calls + tonumber(ARGV[9]), 0
else
  b.calls, b.failures, b.failed = b.calls + 1, b.failures + 1, b.failed + 1
  local many = b.calls >= tonumber(ARGV[4]) and b.failed * 2 >= b.calls
  if many or b.failures >= tonumber(ARGV[2]) then return open(tonumber(ARGV[5])) end
  redis.call('HSET', key, 'detail', ARGV[8])
end
save('state', 'closed', 'failures', b.failures, 'window', b.window, 'calls', b.calls, 'failed', b.failed)
return {0, 'closed'}
