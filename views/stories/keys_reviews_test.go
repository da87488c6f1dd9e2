package stories

import "dropbell/domain/review"

// reviewKeys adds the keys that pages about reviews compose.
func reviewKeys(add func(format string, values ...any)) {
	for _, s := range review.States() {
		add("review.state.%s", s)
	}
	add("review.now.%s", review.Open, review.Proposed, review.Suspending, review.Suspended, review.Returning, review.Restoring, review.LetBe)
	for _, r := range review.Rules() {
		add("review.rule.%s", r)
		add("review.rule.%s.help", r)
	}
	add("review.says.%s", review.PassesInARow, review.ByProgram, review.SharedPush, review.SharedPhone, review.SharedHousehold)
	for _, s := range review.Steps() {
		add("review.%s", s)
		add("review.%s.title", s)
		add("review.%s.1.one", s)
		add("review.%s.1.other", s)
	}
	add("review.proposed.%s", review.Suspend, review.Return)
	for _, a := range []string{"restored", "upheld"} {
		add("review.answer.%s", a)
		add("review.appeal.%s", a)
		add("review.appeal.%s.title", a)
		add("review.appeal.%s.1", a)
		add("review.appeal.now.%s", a)
	}
	add("review.member.%s", "found", "suspended", "kept", "returned", "restored")
	add("nav.%s", "reviews")
	add("review.field.%s", "coupons", "proposed")
	add("kind_of.%s", "review")
	add("object.%s", "review")
	add("protection.%s", "off", "standard", "strict")
	add("protection.%s.help", "off", "standard", "strict")
}
