package stories

import (
	"time"

	"dropbell/domain/delivery/feedback"
	"dropbell/domain/fault"
	"dropbell/domain/staff"
	"dropbell/domain/user"
	audiencepages "dropbell/views/pages/audience"
	pageparts "dropbell/views/pages/parts"
)

// suppressedAddresses has an address for each reason.
func suppressedAddresses() []feedback.Suppression {
	ago := func(d time.Duration) time.Time { return Now().Add(-d) }
	return []feedback.Suppression{
		{Address: person(1001).Email, Reason: string(feedback.Bounced), Provider: "ses", Cause: "550 5.1.1 unknown user", Since: ago(20 * time.Minute)},
		{Address: "a-very-long-address-that-somebody-really-has@subdomain.of.a.company.example", Reason: string(feedback.SoftBounced), Provider: "mailgun",
			Cause: "452 4.2.2 the mailbox is full; see https://mail.company.example/help/a-very-long-page-about-mailboxes-that-are-full", Since: ago(5 * time.Hour)},
		{Address: "lin@example.com", Reason: string(feedback.Complained), Provider: "postmark", Since: ago(50 * time.Hour)},
		{Address: "ada@example.com", Reason: feedback.ByStaff, Cause: "asked by phone", Since: ago(2000 * time.Hour)},
	}
}

func suppressions() []Story {
	masked := suppressedAddresses()
	for i := range masked {
		masked[i].Address = user.MaskEmail(masked[i].Address)
	}
	return []Story{
		{Name: "suppressions/empty", Page: audiencepages.Suppressions{}.Page()},
		{Name: "suppressions/many", Page: audiencepages.Suppressions{List: suppressedAddresses(), Paged: pageparts.Paged{First: "/suppressions", Next: "/suppressions?after=1.1", Export: "/suppressions.csv"}}.Page()},
		{Name: "suppressions/masked", Page: audiencepages.Suppressions{List: masked, Masked: true}.Page(), Role: staff.Viewer},
		{Name: "suppressions/add-wrong", Page: audiencepages.SuppressionForm{Address: "ann@", Cause: "asked by phone",
			Errors: []fault.Field{{Name: "address", Key: "rule.email", Message: "must be an e-mail address such as ann@example.com"}}}.Page()},
	}
}
