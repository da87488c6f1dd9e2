package waitlist

// Ahead is roughly how many users are before a user. Users see no bare position: it would promise
// what depends on how much stock comes back.
type Ahead string

// The bands.
const (
	Under10   Ahead = "under_10"
	Under100  Ahead = "under_100"
	Under1000 Ahead = "under_1000"
	More      Ahead = "more"
)

// MaxAhead is up to how many users before a user are counted.
const MaxAhead = 1000

// AheadOf returns the band of a user with n users before.
func AheadOf(n int64) Ahead {
	switch {
	case n < 10:
		return Under10
	case n < 100:
		return Under100
	case n < MaxAhead:
		return Under1000
	}
	return More
}

// Chance is how often the waitlists of a shop reached a user's band.
type Chance string

// The chances. NoChance is that of a shop with fewer than enough waitlists.
const (
	NoChance Chance = ""
	Good     Chance = "good"
	Some     Chance = "some"
	Small    Chance = "small"
)

const (
	enough = 3
	// MaxHistory is how many of a shop's last waitlists are looked at.
	MaxHistory = 20
)

// ChanceOf returns the chance of a user whom reached of the shop's last lists would have given a coupon.
func ChanceOf(reached, lists int64) Chance {
	switch {
	case lists < enough:
		return NoChance
	case 10*reached >= 6*lists:
		return Good
	case 10*reached >= 2*lists:
		return Some
	}
	return Small
}

// An Outlook is what a waiting user may expect.
type Outlook struct {
	Ahead  Ahead
	Chance Chance
}
