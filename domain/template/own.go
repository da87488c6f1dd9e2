package template

import "cmp"

// Own returns s without the fields that do not belong to its kind and target, so that a field
// that no rule checks is neither stored nor shown. A percentage may have a threshold.
func (s Spec) Own() Spec {
	switch s.Kind {
	case AmountOff:
		s.Threshold, s.PercentOff, s.MaxOff = 0, 0, 0
	case ThresholdOff:
		s.PercentOff, s.MaxOff = 0, 0
	case PercentOff:
		s.AmountOff = 0
	}
	if s.Target != Product {
		s.Product = ""
	}
	s.Waitlist = cmp.Or(s.Waitlist, NoWaitlist)
	switch {
	case s.Waitlist != OfferNext:
		s.AcceptMinutes = 0
	case s.AcceptMinutes == 0:
		s.AcceptMinutes = DefaultAcceptMinutes
	}
	s.RefundTo = cmp.Or(s.RefundTo, RefundToHolder)
	s.Protection = cmp.Or(s.Protection, Unprotected)
	s.Stacking = s.Stacking.own()
	s.Opening = s.Opening.own()
	return s
}
