package parts

import "dropbell/domain/fault"

// KeyTimeTwice marks a typed time that happens twice in the shop's zone.
const KeyTimeTwice = "rule.time_twice"

// TimeHappensTwice reports whether the named time was refused for that.
func TimeHappensTwice(errs []fault.Field, name string) bool {
	for _, e := range errs {
		if e.Name == name && e.Key == KeyTimeTwice {
			return true
		}
	}
	return false
}
