-- Keys: as above. Arguments: holder, its epoch, lease ms, then channels with their frames. Gives 0 if the
-- lease is another's, else the places of those without a listener: one node knows that, a cluster does not.
local holder = redis.call('GET', KEYS[1])
if holder ~= ARGV[1] then
  if holder and not string.match(holder, ':$') then return 0 end
  if tonumber(redis.call('GET', KEYS[2]) or ARGV[2]) > tonumber(ARGV[2]) then return 0 end
  redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[3])
end
local say = KEYS[4] and redis.call('EXISTS', KEYS[4]) == 0 and 'SPUBLISH' or 'PUBLISH'
local unheard = {}
for at = 4, #ARGV, 2 do
  local heard = redis.call(say, ARGV[at], ARGV[at + 1])
  if heard == 0 and not KEYS[4] then unheard[#unheard + 1] = (at - 4) / 2 end
end
return unheard
