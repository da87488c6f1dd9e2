package bouncemail_test

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"dropbell/adapters/bouncemail"
	"dropbell/domain/delivery/feedback"
)

var (
	refs    = feedback.NewRefs("a secret of tests")
	mine    = feedback.Ref{Batch: 77, User: 4711}
	reader  = bouncemail.NewReader("bounces@mail.shop.example", refs)
	arrived = time.Date(2026, 11, 26, 18, 0, 4, 0, time.UTC)
)

// recorded returns an example in the published format, about the message ref. replace are pairs
// of old and new text.
func recorded(t *testing.T, name, ref string, replace ...string) feedback.Mail {
	t.Helper()
	raw, err := os.ReadFile("testdata/" + name + ".eml")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.ReplaceAll(string(raw), "{ref}", ref)
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(text, replace[i]) {
			t.Fatalf("%s lacks %q", name, replace[i])
		}
		text = strings.ReplaceAll(text, replace[i], replace[i+1])
	}
	return feedback.Mail{Raw: []byte(strings.ReplaceAll(text, "\n", "\r\n")), At: arrived}
}

// TestMailsAreRead reads the examples, and examples with one field changed.
func TestMailsAreRead(t *testing.T) {
	ref := refs.Text(mine)
	ada := []string{"ada@recipient.example"}
	report := func(s feedback.Status, named []string, cause string) feedback.Returned {
		return feedback.Returned{Fate: feedback.Reported, Ref: mine, Status: s, Named: named, Cause: cause, At: arrived}
	}
	only := func(f feedback.Fate) feedback.Returned { return feedback.Returned{Fate: f, At: arrived} }
	for name, c := range map[string]struct {
		mail feedback.Mail
		want feedback.Returned
	}{
		"hard":               {recorded(t, "hard", ref), report(feedback.Bounced, ada, "unknown user: …")},
		"hard, upper case":   {recorded(t, "hard", strings.ToUpper(ref)), report(feedback.Bounced, ada, "unknown user: …")},
		"policy":             {recorded(t, "hard", ref, "5.1.1", "5.7.1"), report(feedback.SoftBounced, ada, "unknown user: …")},
		"full":               {recorded(t, "hard", ref, "5.1.1", "5.2.2"), report(feedback.SoftBounced, ada, "unknown user: …")},
		"delayed":            {recorded(t, "hard", ref, "Action: failed", "Action: delayed"), feedback.Returned{Fate: feedback.Ignored, At: arrived}},
		"delivered":          {recorded(t, "hard", ref, "Action: failed", "Action: delivered", "5.1.1", "2.0.0"), report(feedback.Delivered, ada, "")},
		"international":      {recorded(t, "hard", ref, "message/delivery-status", "message/global-delivery-status"), report(feedback.Bounced, ada, "unknown user: …")},
		"soft":               {recorded(t, "soft", ref), report(feedback.SoftBounced, ada, "The recipient's inbox is out of storage space.")},
		"complaint":          {recorded(t, "arf", ref), report(feedback.Complained, nil, "abuse")},
		"complaint, named":   {recorded(t, "arf", ref, "<redacted-7f3a@", "<Ada@"), report(feedback.Complained, ada, "abuse")},
		"not spam":           {recorded(t, "arf", ref, "Feedback-Type: abuse", "Feedback-Type: not-spam"), only(feedback.Ignored)},
		"automatic reply":    {recorded(t, "vacation", ref), only(feedback.Ignored)},
		"letter":             {recorded(t, "vacation", ref, "Auto-Submitted: auto-replied (vacation)", "Auto-Submitted: no"), only(feedback.Foreign)},
		"read receipt":       {recorded(t, "hard", ref, "report-type=delivery-status", "report-type=disposition-notification"), only(feedback.Ignored)},
		"forged":             {recorded(t, "hard", feedback.NewRefs("another secret").Text(mine)), only(feedback.Foreign)},
		"no reference":       {recorded(t, "hard", ""), only(feedback.Foreign)},
		"no action":          {recorded(t, "hard", ref, "Action: failed", "Nothing: failed"), only(feedback.Unreadable)},
		"malformed fields":   {recorded(t, "hard", ref, "Status: 5.1.1", "Status 5.1.1"), only(feedback.Unreadable)},
		"no part of reports": {recorded(t, "hard", ref, "message/delivery-status", "text/plain"), only(feedback.Unreadable)},
		"empty":              {feedback.Mail{At: arrived}, only(feedback.Foreign)},
		"no header":          {feedback.Mail{Raw: []byte("\x00\xff no colon\r\n\r\n"), At: arrived}, only(feedback.Unreadable)},
	} {
		got := reader.Read(c.mail)
		if got.Fate != feedback.Reported {
			got = feedback.Returned{Fate: got.Fate}
			c.want = feedback.Returned{Fate: c.want.Fate}
		}
		if got.Status == feedback.Delivered {
			got.Cause = ""
		}
		if strings.Contains(got.Cause, "@") {
			t.Errorf("%s: the cause names an address: %q", name, got.Cause)
		}
		if strings.HasPrefix(got.Cause, "unknown user:") {
			got.Cause = "unknown user: …" // masked
		}
		if !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: %+v, not %+v", name, got, c.want)
		}
	}
}

// A mail is fetched up to a limit, so the end of the returned message may be missing.
func TestTruncatedMails(t *testing.T) {
	m := recorded(t, "hard", refs.Text(mine))
	whole := len(m.Raw)
	for end := range whole {
		m.Raw = m.Raw[:whole-end]
		got := reader.Read(m)
		if got.Fate == feedback.Reported && got.Ref != mine {
			t.Fatalf("cut after %d bytes: %+v", whole-end, got)
		}
		if end < 200 && got.Fate != feedback.Reported {
			t.Fatalf("without its last %d bytes: %s", end, got.Fate)
		}
	}
}

// TestNamedAddressesAreNotBelieved: an address that a report merely names is not suppressed. The
// signature proves only the recipient of the message.
func TestNamedAddressesAreNotBelieved(t *testing.T) {
	victim := reader.Read(recorded(t, "hard", refs.Text(mine), "Ada@Recipient.example", "victim@other.example", "rfc822;ada@recipient.example", "rfc822;victim@other.example"))
	if r := victim.Report("ada@recipient.example"); r.Address != "" || r.Ref != mine || r.Status != feedback.Bounced {
		t.Errorf("%+v", r)
	}
	own := reader.Read(recorded(t, "hard", refs.Text(mine)))
	if r := own.Report("Ada@recipient.example"); r.Address != "ada@recipient.example" {
		t.Errorf("%+v", r)
	}
	if r := own.Report("new@recipient.example"); r.Address != "" { // changed since
		t.Errorf("%+v", r)
	}
}
