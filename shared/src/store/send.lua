-- Keys: those of `renew.lua`. Arguments: holder, its epoch, lease ms, then channels with their frames.
-- Gives 0 if the lease is another's, else the places of those without a listener: one node knows that, a
-- cluster does not.
if not isOurs() then return 0 end
local unheard = {}
for at = 4, #ARGV, 2 do
  local heard = redis.call(say, ARGV[at], ARGV[at + 1])
  if heard == 0 and not KEYS[4] then unheard[#unheard + 1] = (at - 4) / 2 end
end
return unheard
