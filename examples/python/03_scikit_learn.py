# %% [markdown]
# # A classifier of scikit-learn
# Any classifier gives a likelihood ratio once it is calibrated: here gradient boosting of
# scikit-learn tells a signal from a background, and neyman does the rest.

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
# Calibrated, the score is log r of signal and background, and with it the share of the signal has a
# likelihood: $\ell(\mu) = \sum_i \log(1 - \mu + \mu\,r(x_i))$.

# %%
r = np.exp(smooth.log_ratios(boosting.decision_function(observed)))
mu = np.linspace(0, 0.25, 501)
log_likelihood = np.log1p(np.outer(mu, r - 1)).sum(axis=1)
best = mu[log_likelihood.argmax()]
print(f"μ = {best:.4f}")
scan = neyman.Scan("mu", mu, 2 * (log_likelihood.max() - log_likelihood), 0)
ax = neyman.plot.profile(scan, truth=0.1)
neyman.plot.profile(neyman.Likelihood(neyman.ExactRatio(p), observed), label="exact", ax=ax)
ax.figure.savefig("profile.png")

# %% [markdown]
# Is the ratio right? Events of the background, weighted by r, must look like those of the signal.

# %%
weights = np.exp(smooth.log_ratios(logits[1]))
ax = neyman.plot.closure((x0[half:, 0], x1[half:, 0]), weights, name="x0")
ax.figure.savefig("closure.png")
