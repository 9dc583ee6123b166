# %% [markdown]
# # A classifier of scikit-learn
# Any classifier gives a likelihood ratio once it is calibrated: here gradient boosting of
# scikit-learn tells the components of a mixture apart, and neyman does the rest.

# %% parameters
samples = 100_000  # simulated events in all

# %%
import neyman
import neyman.plot
import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier

background = neyman.Join([neyman.Exponential(0.5), neyman.Normal(0, 2)])
signal = neyman.Join([neyman.Normal(3, 0.7), neyman.Normal(1, 0.5)])
p = neyman.Mixture([background, signal], ["1 - mu"], names=["background", "signal"],
                   parameters={"mu": (0, 1)})
observed = p.sample(2000, {"mu": 0.1}, seed=1)

# %% [markdown]
# The classifier by itself, on events that it has not seen: the score of trees is not a ratio yet.

# %%
boosting = HistGradientBoostingClassifier(max_iter=60)
x0, x1 = signal.sample(samples // 4, seed=2), background.sample(samples // 4, seed=3)
half = samples // 8
boosting.fit(np.vstack([x0[:half], x1[:half]]), np.repeat([0, 1], half))
logits = boosting.decision_function(x0[half:]), boosting.decision_function(x1[half:])
smooth = neyman.SmoothCalibrator().fit(*logits)
neyman.plot.calibration(logits, smooth).figure.savefig("calibration.png")
neyman.plot.roc(logits, label="signal and background").figure.savefig("roc.png")

# %% [markdown]
# neyman trains the same classifier on one part of the events and calibrates it on another, and the
# other way round: the ratio of signal and background, and with it the likelihood of the share of the
# signal, $\ell(\mu) = \sum_i \log(1 - \mu + \mu\,r(x_i))$.

# %%
ratio = neyman.DecomposedRatio(p, reference=0.5, samples=samples, classifier=boosting, seed=1)
likelihood = neyman.Likelihood(ratio, observed)
fit = likelihood.fit()
print(f"μ = {fit.theta['mu']:.4f} ± {fit.error['mu']:.4f}")
ax = neyman.plot.profile(likelihood, truth=0.1)
neyman.plot.profile(neyman.Likelihood(neyman.ExactRatio(p), observed), label="exact", ax=ax)
ax.figure.savefig("profile.png")

# %% [markdown]
# Is the ratio right? Events at μ = 0.5, weighted by r, must look like those at μ = 0.1.

# %%
x0, x1 = p.sample(20000, 0.1, seed=4), p.sample(20000, 0.5, seed=5)
check = neyman.diagnostics.closure(neyman.RatioEvents.of(ratio, x0, x1, 0.1, 0.5))
print(f"closure: {check.verdict}, p-value {check.p_value:.3f}")
neyman.plot.closure(check, feature=0).figure.savefig("closure.png")
