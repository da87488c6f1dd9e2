package campaigns

import (
	"testing"

	"dropbell/domain/message"
	"dropbell/views/pages/parts"
)

// The texts of a campaign differ in length by language. The cost per recipient is the cost of the
// longest text.
func TestTheDearestText(t *testing.T) {
	text := func(n, price int64) CampaignText {
		return CampaignText{Preview: parts.Preview{Size: message.SMSSize{Parts: int(n)}, Price: price, Currency: "CNY"}}
	}
	for _, c := range []struct {
		texts []CampaignText
		want  int64
	}{{nil, 0}, {[]CampaignText{text(3, 0)}, 0}, {[]CampaignText{text(1, 450), text(3, 450), text(2, 450)}, 1350}} {
		if got, currency := dearest(c.texts); got != c.want || got > 0 && currency != "CNY" {
			t.Errorf("%+v: %d %s, want %d", c.texts, got, currency, c.want)
		}
	}
}
