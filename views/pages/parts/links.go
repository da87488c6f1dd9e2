package parts

import (
	"fmt"
	"strconv"
)

// CampaignURL is the address of a campaign's page or of something below it.
func CampaignURL(id int64, below string) string {
	u := "/campaigns/" + strconv.FormatInt(id, 10)
	if below != "" {
		u += "/" + below
	}
	return u
}

// CodesURL is where the redeem codes of a template are.
func CodesURL(templateID int64) string { return fmt.Sprintf("/templates/%d/codes", templateID) }

// CouponURL is where a coupon is shown.
func CouponURL(id int64) string { return "/coupons/" + strconv.FormatInt(id, 10) }

// ExplainURL is where a user's reminders of a template are explained.
func ExplainURL(templateID int64, user string) string {
	return fmt.Sprintf("/templates/%d/users/%s", templateID, user)
}

// GrantsURL is where the lists of a template are that coupons were given to.
func GrantsURL(templateID int64) string { return fmt.Sprintf("/templates/%d/grants", templateID) }
