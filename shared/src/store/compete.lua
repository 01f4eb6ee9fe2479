-- Keys: lease, epoch, snapshot, and in a cluster `plain`. Arguments: process, known epoch, lease ms, the
-- leader's channel. Gives epoch, snapshot, age in ms, or nothing where another process has the lease.
--
-- A store that forgot its keys does not know of a leader, which believes in its own lease for as long as it
-- lasts. For that long only the process that had it may have it. A process that knows of none asks whether
-- there is a listener on the leader's channel. If it got the lease all the same, it loses it to the older
-- epoch.
local known = tonumber(ARGV[2])
local epoch, id = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+):(.*)$')
if epoch and id ~= ARGV[1] and tonumber(epoch) >= known then return {} end
local stored = tonumber(redis.call('GET', KEYS[2]) or '0')
local isLost = stored < known
if not epoch and stored + known == 0 then isLost = redis.call(say, ARGV[4], '') > 0 end
if isLost then
  redis.call('SET', KEYS[2], ARGV[2], 'PX', 604800000)
  redis.call('SET', KEYS[1], ARGV[2] .. ':', 'PX', ARGV[3])
  return {}
end
epoch = string.format('%.0f', math.max(stored, known) + 1)
redis.call('SET', KEYS[2], epoch, 'PX', 604800000)
redis.call('SET', KEYS[1], epoch .. ':' .. ARGV[1], 'PX', ARGV[3])
local kept = redis.call('HMGET', KEYS[3], 'bytes', 'at')
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local age = kept[2] and now - tonumber(kept[2]) or 0
return {epoch, kept[1] or '', string.format('%.0f', math.max(age, 0))}
