package campaigns

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"dropbell/musttest"
)

// TestMessagesOfOlderVersionsAreReadable: the golden file is a message as version 0.1.0 stored it.
func TestMessagesOfOlderVersionsAreReadable(t *testing.T) {
	payload, err := os.ReadFile("testdata/campaign.ranges.v1.json")
	musttest.OK(t, err)
	var got, want leftRanges
	musttest.OK(t, json.Unmarshal(payload, &got))
	want.CampaignID, want.Seq = 9007199254740993, 7
	want.Ranges = append(want.Ranges, leftRange{From: 9007199254740993, To: 9223372036854775807, Users: 2, Set: []byte{1, 2, 255}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
