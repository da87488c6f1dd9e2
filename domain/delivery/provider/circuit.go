package provider

import "dropbell/domain/delivery"

// Reached returns the ids of the providers that messages of the channel can go to: the
// enabled providers, and 0 for the environment's provider, unless a provider serves every
// shop and country. environment says that the environment configures the channel. Without
// any provider it returns 0, whose circuit then stays closed. Providers that do not share
// messages, see [Kind.Shares], are left out: they delay no other message of the channel.
func Reached(all []Provider, c delivery.Channel, environment bool) (ids []int64) {
	everywhere := false
	for _, p := range all {
		if p.Channel == c && p.Enabled && p.DeletedAt == nil && p.Kind.Shares() {
			ids = append(ids, p.ID)
			everywhere = everywhere || p.Shop == 0 && len(p.Countries) == 0
		}
	}
	if len(ids) == 0 || environment && !everywhere {
		ids = append(ids, 0)
	}
	return ids
}
