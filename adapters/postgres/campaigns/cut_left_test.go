package campaigns

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestMessagesOfOlderVersionsAreReadable: the golden file is a message as version 0.1.0 stored it.
func TestMessagesOfOlderVersionsAreReadable(t *testing.T) {
	payload, err := os.ReadFile("testdata/campaign.ranges.v1.json")
	if err != nil {
		t.Fatal(err)
	}
	var got, want leftRanges
	if err := json.Unmarshal(payload, &got); err != nil {
		t.Fatal(err)
	}
	want.CampaignID, want.Seq = 9007199254740993, 7
	want.Ranges = append(want.Ranges, leftRange{From: 9007199254740993, To: 9223372036854775807, Users: 2, Set: []byte{1, 2, 255}})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
