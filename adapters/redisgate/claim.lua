-- Decides a group of claims of users whose home is this shard, in order and by
-- the rules of claim.Admit. All accepted claims of the group become one entry of the
-- stream. A refusal changes nothing.
-- All keys share one hash tag.
-- KEYS  1 shard  2 users: claims that stand  3 keys: requests that were accepted
--       4 claims: accepted and not yet written to the database, "user ms"  5 stream
--       6 pace: how many were accepted in a second, "second count" in a ring of 64
-- ARGV  per claim: id, user, origin, key ("" = the claim's own); then, if a user comes through a door,
--       or is of a household that the drop limits, one text with "lead limit household;" per claim: the
--       milliseconds by which the drop opens earlier for its user, the limit of the user (0 = the drop's),
--       and the number of the household (0 = none). The household is counted in users as "h<number>", and
--       "of:<user>" there is the household that a user's coupons count for
-- returns { "missing" } if there is no shard, { "sealed" } while it is being built, { "moved" }
--       near the opening or the end if the clock of this server was not compared with the
--       database's clock; otherwise { "open", stock left, word per claim … }, with "first"
--       instead of "open" if the stream was empty before. A word is
--       "ok <ms since 1970>" (accepted)
--       | "was <claim> <user>[ <ms>]" (accepted before; with the instant until it is written)
--       | "ended" | "early" | "draft" | "cancelled" | "paused"
--       | "otherway" (the coupons are obtained in another way)
--       | "dry" (no stock left here) | "limit" (of the user) | "drylimit" (both)
--       | "household" (limit of the household) | "dryhousehold" (and no stock left here)
--       | "ask" (a shard that is being filled does not know the user yet)
local f = redis.call('HMGET', KEYS[1], 'state', 'status', 'obtain', 'opens', 'closes', 'ahead', 'limit', 'stock', 'accepted', 'epoch', 'gone', 'over', 'server', 'households')
if not f[1] then return { 'missing' } end
if f[1] == 'sealed' then return { 'sealed' } end
local filling = f[1] == 'filling'
local status, obtain, limit, stock, accepted = f[2], f[3], tonumber(f[7]), tonumber(f[8]), tonumber(f[9])
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000) - tonumber(f[6])
local n = math.floor(#ARGV / 4)
local leads, limits, homes = {}, {}, {}
-- The clock of another server would open or end the drop too early or too late.
local opening, ending = now - tonumber(f[4]), now - tonumber(f[5])
if #ARGV % 4 == 1 then
  for lead, most, home in string.gmatch(ARGV[#ARGV], '(%d+) (%d+) (%d+);') do
    leads[#leads + 1], limits[#limits + 1] = tonumber(lead), tonumber(most)
    homes[#homes + 1] = home ~= '0' and home
    local own = now - tonumber(f[4]) + tonumber(lead)
    if math.abs(own) < math.abs(opening) then opening = own end
  end
end
if f[13] and f[13] ~= '' and (math.abs(opening) < 60000 or math.abs(ending) < 60000) then
  local info = redis.pcall('INFO', 'server')
  local id = type(info) == 'string' and string.match(info, 'run_id:(%x+)')
  if id and id ~= f[13] then return { 'moved' } end
end
local started, ended = now >= tonumber(f[4]), now >= tonumber(f[5])
local gone = tonumber(f[11]) > 0 and now >= tonumber(f[11])

local users, keys = {}, {}
for i = 1, n do
  local at = 4 * i - 3
  users[i] = ARGV[at + 1]
  -- A claim without a key gets its id as the key, so that a command that the
  -- client library repeats after a broken connection is recognised.
  keys[i] = ARGV[at + 3] == '' and '#' .. ARGV[at] or ARGV[at + 2] .. ':' .. ARGV[at + 3]
end
local counts, promised, unknown = {}, {}, {}
for i, c in ipairs(redis.call('HMGET', KEYS[2], unpack(users))) do
  counts[users[i]] = tonumber(c or 0)
  unknown[users[i]] = filling and not c
end
-- The household of a user's first coupon counts.
local together, households = tonumber(f[14] or 0), {}
if together > 0 and #homes > 0 then
  local asked, names, known = {}, {}, {}
  for i = 1, n do asked[i] = 'of:' .. users[i] end
  for i, of in ipairs(redis.call('HMGET', KEYS[2], unpack(asked))) do
    local home = of or homes[i]
    if home then
      households[i] = 'h' .. home
      if not known[home] then
        known[home] = true
        names[#names + 1] = households[i]
      end
    end
  end
  if #names > 0 then
    for i, c in ipairs(redis.call('HMGET', KEYS[2], unpack(names))) do
      counts[names[i]] = tonumber(c or 0)
      unknown[names[i]] = filling and not c
    end
  end
end
for i, p in ipairs(redis.call('HMGET', KEYS[3], unpack(keys))) do promised[keys[i]] = p end

-- An instant is known as long as the claim is not written.
local function before(promise)
  local id = string.match(promise, '^%S+')
  local ms = string.match(redis.call('HGET', KEYS[4], id) or '', ' (%d+)$')
  return 'was ' .. promise .. (ms and ' ' .. ms or '')
end

local function judge(i, user, origin, key)
  local windowed = origin == 'claim' or origin == 'code'
  if status == 'cancelled' or status == 'draft' then return status end
  if windowed and origin ~= obtain then return 'otherway' end
  if gone or f[12] == '1' or (windowed and (ended or status == 'closed')) then return 'ended' end
  if status == 'paused' then return status end
  if windowed and not started and (not leads[i] or now < tonumber(f[4]) - leads[i]) then return 'early' end
  -- Keys of grants that the limit does not refuse; see claim.OverLimit.
  local most = limits[i] and limits[i] > 0 and limits[i] or limit
  local full = counts[user] >= most and not (origin == 'grant' and string.sub(key, 1, 5) == 'over:')
  local over = households[i] and counts[households[i]] >= together and not (origin == 'grant' and string.sub(key, 1, 5) == 'over:')
  if stock <= 0 then return full and 'drylimit' or over and 'dryhousehold' or 'dry' end
  return full and 'limit' or over and 'household' or 'ok'
end

local words = { 'open', 0 }
local newUsers, newKeys, newClaims, entry = {}, {}, {}, { 'epoch', f[10], 'at', string.format('%.0f', now) }
local changed, fresh = {}, {}
for i = 1, n do
  local at = 4 * i - 3
  local id, user, key = ARGV[at], users[i], keys[i]
  local word
  if unknown[user] or households[i] and unknown[households[i]] then
    word = 'ask'
  elseif promised[key] then
    word = fresh[key] and 'was ' .. promised[key] .. ' ' .. entry[4] or before(promised[key])
  else
    word = judge(i, user, ARGV[at + 2], ARGV[at + 3])
    if word == 'ok' then
      stock, accepted = stock - 1, accepted + 1
      counts[user] = counts[user] + 1
      changed[user] = true
      if households[i] then
        counts[households[i]] = counts[households[i]] + 1
        changed[households[i]] = true
        newUsers[#newUsers + 1] = 'of:' .. user
        newUsers[#newUsers + 1] = string.sub(households[i], 2)
      end
      promised[key], fresh[key] = id .. ' ' .. user, true
      newKeys[#newKeys + 1] = key
      newKeys[#newKeys + 1] = promised[key]
      newClaims[#newClaims + 1] = id
      newClaims[#newClaims + 1] = user .. ' ' .. entry[4]
      entry[#entry + 1] = id
      entry[#entry + 1] = string.format('%.0f', accepted) .. ' ' .. user .. ' ' .. ARGV[at + 2] .. ' ' .. ARGV[at + 3]
    end
  end
  words[i + 2] = word == 'ok' and word .. ' ' .. entry[4] or word
end
if #newClaims > 0 then
  for user in pairs(changed) do
    newUsers[#newUsers + 1] = user
    newUsers[#newUsers + 1] = counts[user]
  end
  redis.call('HSET', KEYS[1], 'stock', string.format('%.0f', stock), 'accepted', string.format('%.0f', accepted))
  redis.call('HSET', KEYS[2], unpack(newUsers))
  redis.call('HSET', KEYS[3], unpack(newKeys))
  redis.call('HSET', KEYS[4], unpack(newClaims))
  redis.call('XADD', KEYS[5], '*', unpack(entry))
  if redis.call('XLEN', KEYS[5]) == 1 then words[1] = 'first' end
  local second = string.format('%.0f', math.floor(now / 1000))
  local place = string.format('%.0f', math.floor(now / 1000) % 64)
  local of, count = string.match(redis.call('HGET', KEYS[6], place) or '', '^(%d+) (%d+)$')
  if of ~= second then count = 0 end
  redis.call('HSET', KEYS[6], place, second .. ' ' .. string.format('%.0f', count + #newClaims / 2))
end
words[2] = stock
return words
